// SPDX-License-Identifier: Apache-2.0
// A pipeline of programs in four languages, in one sandbox: each reads what the one before it printed.
import { Sandbox } from "millibox";

interface Stage {
  readonly title: string;
  readonly language: string;
  readonly code: string;
}

const STAGES: readonly Stage[] = [
  {
    title: "a shell makes a log of requests",
    language: "shell",
    code: String.raw`
for n in $(seq 300); do
    case $((n % 3)) in 0) path=/search ;; 1) path=/cart ;; *) path=/ ;; esac
    echo "GET $path $((n * 37 % 101 + 5))ms"
done`,
  },
  {
    title: "Python parses it",
    language: "python",
    code: String.raw`
import re, sys
for line in sys.stdin:
    _, path, ms = re.fullmatch(r"(\w+) (\S+) (\d+)ms\n", line).groups()
    print(path, ms)`,
  },
  {
    title: "C finds percentiles",
    language: "c",
    code: String.raw`
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct row { char path[32]; int ms; };
static int order(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int paths = strcmp(x->path, y->path);
    return paths ? paths : x->ms - y->ms;
}
int main(void)
{
    static struct row rows[1000];
    int count = 0, first = 0;
    while (count < 1000 && scanf("%31s %d", rows[count].path, &rows[count].ms) == 2)
        count++;
    qsort(rows, count, sizeof(rows[0]), order);
    for (int i = 1; i <= count; i++)
        if (i == count || strcmp(rows[i].path, rows[first].path)) {
            int n = i - first;
            printf("%s %d %d %d\n", rows[first].path, n, rows[first + n / 2].ms, rows[first + n * 95 / 100].ms);
            first = i;
        }
}`,
  },
  {
    title: "JavaScript writes a report",
    language: "javascript",
    code: String.raw`
const rows = require('fs').readFileSync(0, 'utf8').trim().split('\n').map((line) => line.split(' '));
console.log('| path | requests | p50 | p95 |\n| --- | --- | --- | --- |');
for (const [path, ...numbers] of rows) console.log('| ' + [path, ...numbers].join(' | ') + ' |');`,
  },
];

const box = await Sandbox.create({ memory: "512Mi" });
try {
  let text = "";
  for (const { title, language, code } of STAGES) {
    const result = await box.runCode(code, { language, stdin: text, timeout: 60 });
    text = result.raiseForStatus().stdout;
    console.log(`${title}: ${text.trim().split("\n").length} lines`);
  }
  console.log(text);
} finally {
  await box.close();
}
