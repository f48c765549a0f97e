"""The prompts behind the goldens, written for this purpose.

They differ in script, length and kind. `long` has to pass 512 tokens in every tokenizer
used, so that it leaves Gemma 3's sliding window.
"""

from __future__ import annotations

LIGHTHOUSE = """The lighthouse at the end of the pier had not been lit for eleven years \
when the letter arrived. It was addressed to the keeper, a post that no longer existed, \
and so the harbour master opened it himself. Inside was a single sheet of blue paper and \
a key. The sheet said only that the lamp would be needed again before the winter was \
over, and that whoever read these words should climb the stairs and see that the glass \
was clean.

He laughed at first, then he showed it to his daughter, who did not laugh. She had \
watched the shoals on the tide charts move a little further east each spring, and she \
knew that the buoys which had replaced the lamp were now marking water that was no longer \
deep. That evening they took a bucket, some vinegar and a bundle of old newspapers, and \
went up together."""

ENGINE = """A server that answers many people at once with one language model has to \
solve a problem of time and a problem of space. The problem of time is that each new word \
depends on all of the words before it, so a reply cannot be computed in one piece: the \
model is run once for every word, and each run reads all of its weights from memory. If \
the server handled one person after another, most of the machine would wait for memory \
while doing almost no arithmetic. The remedy is to run the replies of many people \
together, one step at a time, so that every weight that is read serves all of them. \
People come and go, and therefore the group is formed again at each step: whoever is \
finished leaves, and whoever has arrived takes the free seat.

The problem of space comes from the notes that the model keeps about the words it has \
already seen. For every word and every layer it stores a key and a value, and a long \
conversation can need more room for its notes than the weights themselves. Nobody knows \
beforehand how long a reply will be. If the server set aside the largest possible room \
for each person, it could serve only a few of them, and most of that room would stay \
empty. The remedy is an old one, borrowed from operating systems: the notes are cut into \
pages of equal size, pages are handed out as they are needed, and a small table for each \
conversation says in which order its pages have to be read. Two conversations that begin \
with the same words can even share the pages of that beginning, as long as neither of \
them writes to a page that the other one still reads.

With these two ideas in place, the rest is a matter of fairness. A newcomer brings a long \
question, and reading it takes as much work as hundreds of single steps. If the server \
read it all at once, the people who are already being answered would see their text \
stop for a moment, and a text that stutters is worse than a text that is slow. So the \
question is read in pieces, a few hundred words at each step, beside the single words of \
the others. The size of a piece is a promise: it bounds how long anybody has to wait for \
the next word. When the pages run out, somebody has to give way, and it is usually the \
one who came last, since the least work is lost in that case. Its pages are returned, \
its question goes back to the head of the queue, and when there is room again the notes \
are computed once more.

None of this changes what the model says. That is the rule by which all of it can be \
tested: a reply that was computed alone, and the same reply computed in a crowd, read in \
pieces, interrupted and resumed, must agree word for word, or at the very least differ \
only where two words were so close that rounding decides between them. A test that \
compares the two is worth more than any amount of careful reading. It costs little, too. \
A few questions are asked first in an empty room and their answers are written down. Then \
the doors are opened, a noisy crowd is let in, and the same questions are asked again, in \
another order and with other neighbours. Whoever finds a difference has found either a \
mistake in the bookkeeping of the pages or a sum that was added up in another order, and \
the second kind is small enough to be told from the first, because"""

CODE = '''def merge(left: list[int], right: list[int]) -> list[int]:
    """Merges two sorted lists into one."""
    result = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            result.append(left[i])
            i += 1
        else:
'''

CHAT = """<|im_start|>system
You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>
<|im_start|>user
Name three rivers in Europe and say which is the longest.<|im_end|>
<|im_start|>assistant
"""

COMMON: list[tuple[str, str]] = [
    ("english_short", "The capital of France is"),
    ("french", "Il était une fois, dans un petit village au bord de la mer,"),
    ("german", "Die Würde des Menschen ist unantastbar. Sie zu achten und zu schützen ist"),
    ("chinese", "人工智能正在改变我们的生活，例如在医疗和教育领域，"),
    ("arabic", "تقع مدينة القاهرة على ضفاف نهر النيل وهي"),
    (
        "mixed_scripts",
        '3.14159 ≈ π; Привет 👋🏽, สวัสดี, ㋡ — 2026-01-31 12:05:09\n\t\t{"a": [1, 22, 333]}   ',
    ),
    ("code", CODE),
    ("medium", LIGHTHOUSE),
    ("long", ENGINE),
]

# A tiny model's vocabulary is little more than the bytes: about a token a letter.
TINY = [("one_letter", "H"), *(prompt for prompt in COMMON if prompt[0] != "long")]

# By architecture: a one-token prompt first, then what only this model is asked.
BY_ARCHITECTURE: dict[str, list[tuple[str, str]]] = {
    "llama": [("one_token", "Hello"), *COMMON, ("chat", CHAT)],
    # The empty text is one token here: the BOS that the tokenizer adds.
    "gemma3": [("one_token", ""), *COMMON],
}


def prompts_for(architecture: str, vocabulary: int) -> list[tuple[str, str]]:
    return TINY if vocabulary < 1000 else BY_ARCHITECTURE[architecture]
