//! The merges of BPE: read from a file's table, or derived from the scores of an SPM vocabulary.

use ahash::AHashMap;

use crate::{invalid, Outcome};

pub type Vocabulary<'a> = AHashMap<&'a str, u32>;

/// "left right" lines, best first. Pieces may hold spaces in theory but not in byte-level BPE,
/// whose alphabet has none; so the first space after the first character is the cut.
pub fn parse(lines: &[&str], vocabulary: &Vocabulary) -> Outcome<Vec<(String, String)>> {
    let mut merges = Vec::with_capacity(lines.len());
    for (rank, line) in lines.iter().enumerate() {
        let Some((left, right)) = line.split_once(' ') else {
            return invalid(format!(
                "merge {rank} \"{line}\" is not two pieces with a space between"
            ));
        };
        for piece in [left, right, &format!("{left}{right}")] {
            if !vocabulary.contains_key(piece) {
                return invalid(format!(
                    "merge {rank} \"{line}\" names \"{piece}\", which is not a token"
                ));
            }
        }
        merges.push((left.to_owned(), right.to_owned()));
    }
    Ok(merges)
}

/// Every way to cut a token into two tokens is a merge; the better the token's score, the earlier.
/// Greedy merging by score (SentencePiece, llama.cpp) and BPE over these merges give the same ids.
/// Among cuts of equal score the longer left side comes first, as in transformers' converter.
pub fn derive(
    tokens: &[(&str, u32)],
    scores: Option<&[f32]>,
    vocabulary: &Vocabulary,
) -> Vec<(String, String)> {
    struct Cut<'a> {
        score: f32,
        left_chars: u32,
        right_chars: u32,
        left: &'a str,
        right: &'a str,
    }
    let mut cuts: Vec<Cut> = Vec::with_capacity(tokens.len() * 2);
    let mut local: Vec<(u32, u32, Cut)> = Vec::new();
    for &(token, id) in tokens {
        // Without scores the order of the table is the order of the merges.
        let score = scores.map_or(-(id as f32), |scores| scores[id as usize]);
        let chars = token.chars().count() as u32;
        local.clear();
        for (index, (at, _)) in token.char_indices().enumerate().skip(1) {
            let (left, right) = token.split_at(at);
            let (Some(&left_id), Some(&right_id)) = (vocabulary.get(left), vocabulary.get(right))
            else {
                continue;
            };
            let left_chars = index as u32;
            let right_chars = chars - left_chars;
            local.push((left_id, right_id, Cut { score, left_chars, right_chars, left, right }));
        }
        local.sort_by_key(|&(left_id, right_id, _)| (left_id, right_id));
        cuts.extend(local.drain(..).map(|(_, _, cut)| cut));
    }
    cuts.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then(b.left_chars.cmp(&a.left_chars))
            .then(b.right_chars.cmp(&a.right_chars))
    });
    cuts.into_iter().map(|cut| (cut.left.to_owned(), cut.right.to_owned())).collect()
}
