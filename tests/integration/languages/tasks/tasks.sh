# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
yes() { if "$@"; then echo yes; else echo no; fi; }
gcd() { if (($2)); then gcd "$2" $(($1 % $2)); else echo "$1"; fi; }
backwards() { rev <<<"$1"; }
sorted() { grep -o . <<<"$1" | sort | tr -d '\n'; }
is_prime() {
	local d
	for ((d = 2; d * d <= $1; d++)); do (($1 % d)) || return 1; done
}
is_palindrome() { [ "$1" = "$(backwards "$1")" ]; }
is_anagram() { [ "$(sorted "$1")" = "$(sorted "$2")" ]; }
is_balanced() {
	local rest=$1 before=
	while [ "$rest" != "$before" ]; do
		before=$rest
		rest=${rest//\(\)/} rest=${rest//\[\]/} rest=${rest//\{\}/}
	done
	[ -z "$rest" ]
}

for ((total = 0, i = 1; i <= 100; i++)); do ((total += i)); done
echo "sum $total"
for ((product = 1, i = 2; i <= 10; i++)); do ((product *= i)); done
echo "factorial $product"
for ((a = 0, b = 1, i = 0; i < 50; i++)); do ((c = a + b, a = b, b = c)); done
echo "fibonacci $a"
echo "gcd $(gcd 1071 462)"
echo "lcm $((21 * 6 / $(gcd 21 6)))"
for ((count = 0, n = 2; n < 1000; n++)); do is_prime $n && ((++count)); done
echo "primes $count"
for ((n = 13195, p = 2; p * p <= n; )); do if ((n % p)); then ((p++)); else ((n /= p)); fi; done
echo "factor $n"
for ((n = 27, steps = 0; n != 1; steps++)); do ((n = n % 2 ? 3 * n + 1 : n / 2)); done
echo "collatz $steps"
for ((n = 2 ** 15, total = 0; n; n /= 10)); do ((total += n % 10)); done
echo "digits $total"
echo "reverse $(backwards stressed)"
echo "palindrome $(yes is_palindrome racecar)"
text='the quick brown fox' only=${text//[^aeiou]/}
echo "vowels ${#only}"
echo "frequent $(tr ' ' '\n' <<<'one two three two one two' | sort | uniq -c | sort -rn | awk 'NR == 1 { print $2 }')"
echo "caesar $(tr A-Za-z D-ZA-Cd-za-c <<<'Hello, World')"
for ((n = 37, bits = 0, place = 1; n; n /= 2, place *= 10)); do ((bits += n % 2 * place)); done
echo "binary $bits"
printf 'hex %x\n' 255
echo "sort $(printf '%s\n' 5 3 9 1 7 | sort -n | paste -sd ' ')"
values=(1 3 5 7 9)
for ((low = 0, high = 5; low < high; )); do
	middle=$(((low + high) / 2))
	if ((values[middle] < 7)); then ((low = middle + 1)); else ((high = middle)); fi
done
echo "search $low"
for ((power = 1, i = 0; i < 200; i++)); do ((power = power * 3 % 13)); done
echo "powmod $power"
m=(1 2 3 4)
echo "matrix $((m[0] * m[0] + m[1] * m[2])) $((m[0] * m[1] + m[1] * m[3])) $((m[2] * m[0] + m[3] * m[2])) $((m[2] * m[1] + m[3] * m[3]))"
row=1 value=1
for ((k = 1; k <= 5; k++)); do
	((value = value * (6 - k) / k))
	row="$row $value"
done
echo "pascal $row"
n=1994 text=
for pair in 1000:M 900:CM 500:D 400:CD 100:C 90:XC 50:L 40:XL 10:X 9:IX 5:V 4:IV 1:I; do
	while ((n >= ${pair%:*})); do
		text=$text${pair#*:}
		((n -= ${pair%:*}))
	done
done
echo "roman $text"
echo "anagram $(yes is_anagram listen silent)"
best=-99 here=0
for value in -2 1 -3 4 -1 2 1 -5 4; do
	((here = here + value > value ? here + value : value, best = here > best ? here : best))
done
echo "subarray $best"
echo "brackets $(yes is_balanced '{[()]}(')"
for ((moves = 0, i = 0; i < 10; i++)); do ((moves = 2 * moves + 1)); done
echo "hanoi $moves"
list=
for ((n = 2; n < 500; n++)); do
	for ((total = 0, d = 1; d <= n / 2; d++)); do ((n % d)) || ((total += d)); done
	((total == n)) && list="$list $n"
done
echo "perfect$list"
list=
for ((n = 1; n <= 15; n++)); do
	word=
	((n % 3)) || word=Fizz
	((n % 5)) || word=${word}Buzz
	list="$list ${word:-$n}"
done
echo "fizzbuzz$list"
echo "runs $(grep -o . <<<aaabbc | uniq -c | awk '{ printf "%s%s", $2, $1 }')"
for ((count = 0, y = 1900; y <= 2000; y++)); do ((y % 4 == 0 && (y % 100 || y % 400 == 0) && ++count)); done
echo "leap $count"
