# SPDX-License-Identifier: Apache-2.0
"""A table goes into a sandbox; pandas and matplotlib work on it there; numbers and a figure come out.

Usage: data_analysis.py [FIGURE]
"""

import random
import sys
from pathlib import Path

import millibox

ANALYSIS = """
import pandas, matplotlib.pyplot as plt
table = pandas.read_csv("sales.csv")
monthly = table.groupby("month")["amount"].sum()
monthly.plot(kind="bar", title="Sales")
plt.tight_layout()
plt.show()
"""


def make_table():
    """A year of sales, the same every time."""
    numbers = random.Random(42)
    lines = [f"{month},{numbers.randint(50, 150)}" for month in range(1, 13) for _ in range(30)]
    return "month,amount\n" + "\n".join(lines) + "\n"


def main(figure):
    with millibox.Sandbox(memory="1Gi") as box:
        box.files.write("sales.csv", make_table())
        drawn = box.run_code(ANALYSIS, timeout=60).raise_for_status()
        figure.write_bytes(drawn.png)
        total = box.run_code("int(monthly.sum())").json
        best = box.run_code("int(monthly.idxmax())").json
        print(box.run_code("monthly.describe()").text)
    print(f"total {total}, best month {best}, figure of {figure.stat().st_size} bytes in {figure}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "sales.png"))
