"""Writes the novels of Debian's `r-cran-janeaustenr` (public domain) as plain text.

    python3 tools/corpus/austen.py OUTPUT.txt

The package keeps them in an R database: runs of a length when unpacked, four bytes, and a zlib stream,
in which a string is `00 04 00 09`, its length in four bytes, and its bytes.
"""

import re
import struct
import sys
import zlib
from pathlib import Path

DATABASE = Path("/usr/lib/R/site-library/janeaustenr/data/Rdata.rdb")
STRING = re.compile(rb"\x00\x04\x00\x09")


def strings(data: bytes) -> list[str]:
    out, at = [], 0
    while match := STRING.search(data, at):
        (size,) = struct.unpack_from(">i", data, match.end())
        begin = match.end() + 4
        at = begin + max(size, 0)
        out.append(data[begin:at].decode("utf-8", "replace") if size >= 0 else "")
    return out


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not DATABASE.exists():
        sys.exit(f"{DATABASE} is not there: install the Debian package r-cran-janeaustenr")
    rest, lines = DATABASE.read_bytes(), []
    while rest:
        stream = zlib.decompressobj()
        block = strings(stream.decompress(rest[4:]))
        rest = stream.unused_data
        if len(block) > 1000:  # A novel; what is shorter is R's own.
            lines += block
    Path(sys.argv[1]).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
