"""Checks of the arithmetic and the writing, without a peer or a model."""

from __future__ import annotations

import unittest
import xml.etree.ElementTree

import machine
import plot
import report
import summary
import worker
from tests import Test, turns


def row(test: str, batch: int, ours: list[float], theirs: list[float]) -> dict:
    return {"model": "m", "test": test, "depth": 0, "batch": batch, "threads": 2, "commit": "abc",
            "date": "2026-12-02", "roof": 100.0, "bound": "memory", "others": 0.02,
            "samples": {"wok": ours, "p": theirs} if theirs else {"wok": ours}, "errors": {}}


def results() -> dict:
    rows = [row("tg8", 16, [30, 60], [10, 30]), row("pp512", 1, [40, 50], []),
            row("tg8", 1, [10, 10], [20, 40])]
    return {"machine": {"slug": "s", "cpu": "C <1>", "cpus": "2 CPUs", "kernels": "avx2",
                        "memory_gib": 4},
            "versions": {"p": "p 1.0"}, "failures": {"m": {"q": "bad file"}},
            "rows": {str(i): r for i, r in enumerate(rows)}}


class SelfTest(unittest.TestCase):
    def test_a_ratio_is_the_median_of_the_rounds(self) -> None:
        self.assertEqual(summary.ratio(row("tg8", 1, [10, 20, 90], [10, 10, 10]), "p"), 2)
        self.assertIsNone(summary.ratio(row("tg8", 1, [10], []), "p"))
        self.assertEqual(summary.spread(row("tg8", 1, [8, 10, 12], []), "wok"), 0.4)

    def test_a_depth_is_a_turn_and_only_the_first_has_batches(self) -> None:
        self.assertEqual(turns(512, 8, [1, 4], [0, 2048]), [
            [Test("pp", 512), Test("tg", 8), Test("tg", 8, 0, 4)],
            [Test("pp", 512, 2048), Test("tg", 8, 2048)]])

    def test_the_table_shows_losses_failures_and_gaps(self) -> None:
        text = report.section(results(), [])
        self.assertIn("| pp512 | 45.0 | — | — |", text)
        self.assertIn("| tg8 ×1 | 10.0 | 30.0 | **0.38** | 100 | 10% | 0 / 67 | 2% |", text)
        self.assertIn("| m | q | does not load |", text)
        self.assertIn("q does not load this file: “bad file”.", text)
        self.assertLess(text.index("tg8 ×1 "), text.index("tg8 ×16"))

    def test_a_report_replaces_only_its_own_section(self) -> None:
        once = report.insert("# A\n\nbefore\n", "one\n")
        twice = report.insert(once + "\n## After\n", "two\n")
        self.assertNotIn("one", twice)
        self.assertTrue(twice.startswith("# A\n\nbefore\n\n" + report.BEGIN + "\ntwo\n"))
        self.assertTrue(twice.endswith(report.END + "\n\n## After\n"))

    def test_a_message_is_one_line_without_folders(self) -> None:
        self.assertEqual(worker.last_line("at\n cannot read '/some/folder/model.gguf'\n\n"),
                         "cannot read 'model.gguf'")

    def test_a_picture_is_xml_with_a_bar_a_value(self) -> None:
        groups = summary.models(results())
        svg = plot.bars("<t>", groups, ["p"], summary.ratio, 1.0, "")
        root = xml.etree.ElementTree.fromstring(svg)
        bars = [e for e in root if e.get("fill") == plot.COLOURS[0] and e.get("height") != "10"]
        self.assertEqual(len(bars), 2)

    def test_a_machine_has_a_name_for_files(self) -> None:
        self.assertRegex(machine.describe("avx2")["slug"], r"^[a-z0-9-]+-avx2-\d+v?cpu$")


if __name__ == "__main__":
    unittest.main()
