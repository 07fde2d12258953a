# SPDX-License-Identifier: Apache-2.0
import math
from collections import Counter
from itertools import groupby


def collatz(n):
    return 0 if n == 1 else 1 + collatz(n // 2 if n % 2 == 0 else 3 * n + 1)


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def caesar(text, by):
    return "".join(chr((ord(c) - ord(b) + by) % 26 + ord(b)) if c.isalpha() else c
                   for c in text for b in ["a" if c.islower() else "A"])


def roman(n):
    text = ""
    for value, letters in zip([1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1], "M CM D CD C XC L XL X IX V IV I".split()):
        text += letters * (n // value)
        n %= value
    return text


def subarray(values):
    best = here = values[0]
    for v in values[1:]:
        here = max(v, here + v)
        best = max(best, here)
    return best


def balanced(text):
    stack = []
    for c in text:
        if c in "([{":
            stack.append(c)
        elif not stack or stack.pop() + c not in ("()", "[]", "{}"):
            return False
    return not stack


def factor(n):
    p = 2
    while p * p <= n:
        n, p = (n // p, p) if n % p == 0 else (n, p + 1)
    return n


def search(values, wanted):
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if values[middle] < wanted else (low, middle)
    return low


def matrix(a):
    return [sum(a[i][k] * a[k][j] for k in range(2)) for i in range(2) for j in range(2)]


def hanoi(n):
    return 0 if n == 0 else 2 * hanoi(n - 1) + 1


def yes(truth):
    return "yes" if truth else "no"


print("sum", sum(range(101)))
print("factorial", math.factorial(10))
print("fibonacci", fibonacci(50))
print("gcd", math.gcd(1071, 462))
print("lcm", 21 * 6 // math.gcd(21, 6))
print("primes", sum(all(n % d for d in range(2, n)) for n in range(2, 1000)))
print("factor", factor(13195))
print("collatz", collatz(27))
print("digits", sum(map(int, str(2**15))))
print("reverse", "stressed"[::-1])
print("palindrome", yes("racecar" == "racecar"[::-1]))
print("vowels", sum(c in "aeiou" for c in "the quick brown fox"))
print("frequent", Counter("one two three two one two".split()).most_common(1)[0][0])
print("caesar", caesar("Hello, World", 3))
print("binary", format(37, "b"))
print("hex", format(255, "x"))
print("sort", *sorted([5, 3, 9, 1, 7]))
print("search", search([1, 3, 5, 7, 9], 7))
print("powmod", pow(3, 200, 13))
print("matrix", *matrix([[1, 2], [3, 4]]))
print("pascal", *[math.comb(5, k) for k in range(6)])
print("roman", roman(1994))
print("anagram", yes(sorted("listen") == sorted("silent")))
print("subarray", subarray([-2, 1, -3, 4, -1, 2, 1, -5, 4]))
print("brackets", yes(balanced("{[()]}(")))
print("hanoi", hanoi(10))
print("perfect", *[n for n in range(2, 500) if sum(d for d in range(1, n) if n % d == 0) == n])
print("fizzbuzz", *["Fizz" * (n % 3 == 0) + "Buzz" * (n % 5 == 0) or n for n in range(1, 16)])
print("runs", "".join(c + str(len(list(g))) for c, g in groupby("aaabbc")))
print("leap", sum(y % 4 == 0 and (y % 100 != 0 or y % 400 == 0) for y in range(1900, 2001)))
