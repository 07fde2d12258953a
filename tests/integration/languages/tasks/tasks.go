// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

func gcd(a, b int) int {
	if b == 0 {
		return a
	}
	return gcd(b, a%b)
}

func yes(truth bool) string {
	if truth {
		return "yes"
	}
	return "no"
}

func isPrime(n int) bool {
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return n > 1
}

func factor(n int) int {
	for p := 2; p*p <= n; {
		if n%p == 0 {
			n /= p
		} else {
			p++
		}
	}
	return n
}

func collatz(n int) int {
	steps := 0
	for ; n != 1; steps++ {
		if n%2 == 0 {
			n /= 2
		} else {
			n = 3*n + 1
		}
	}
	return steps
}

func backwards(text string) string {
	result := ""
	for _, c := range text {
		result = string(c) + result
	}
	return result
}

func letters(text string) string {
	list := strings.Split(text, "")
	sort.Strings(list)
	return strings.Join(list, "")
}

func frequent(text string) string {
	counts, best := map[string]int{}, ""
	for _, word := range strings.Fields(text) {
		counts[word]++
		if counts[word] > counts[best] {
			best = word
		}
	}
	return best
}

func caesar(text string, by rune) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return (c-'a'+by)%26 + 'a'
		case c >= 'A' && c <= 'Z':
			return (c-'A'+by)%26 + 'A'
		}
		return c
	}, text)
}

func choose(n, k int) int {
	if k == 0 || k == n {
		return 1
	}
	return choose(n-1, k-1) + choose(n-1, k)
}

func roman(n int) string {
	text, words := "", strings.Fields("M CM D CD C XC L XL X IX V IV I")
	for i, value := range []int{1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1} {
		text += strings.Repeat(words[i], n/value)
		n %= value
	}
	return text
}

func subarray(values []int) int {
	best, here := values[0], 0
	for _, value := range values {
		if here < 0 {
			here = 0
		}
		here += value
		if here > best {
			best = here
		}
	}
	return best
}

func isBalanced(text string) bool {
	stack := ""
	for _, c := range text {
		at := strings.IndexRune("()[]{}", c)
		if at%2 == 0 {
			stack += "()[]{}"[at+1 : at+2]
		} else if !strings.HasSuffix(stack, string(c)) {
			return false
		} else {
			stack = stack[:len(stack)-1]
		}
	}
	return stack == ""
}

func hanoi(n int) int {
	if n == 0 {
		return 0
	}
	return 2*hanoi(n-1) + 1
}

func runs(text string) string {
	result := ""
	for len(text) > 0 {
		rest := strings.TrimLeft(text, text[:1])
		result += text[:1] + strconv.Itoa(len(text)-len(rest))
		text = rest
	}
	return result
}

func show(name string, values ...interface{}) {
	fmt.Println(append([]interface{}{name}, values...)...)
}

func main() {
	sum, product, primes, digits, vowels, power, leap := 0, 1, 0, 0, 0, 1, 0
	a, b := 0, 1
	values := []int{5, 3, 9, 1, 7}
	var perfect, row, words []interface{}
	for i := 1; i <= 100; i++ {
		sum += i
	}
	for i := 1; i <= 10; i++ {
		product *= i
	}
	for i := 0; i < 50; i++ {
		a, b = b, a+b
	}
	for n := 0; n < 1000; n++ {
		if isPrime(n) {
			primes++
		}
	}
	for _, c := range strconv.Itoa(1 << 15) {
		digits += int(c - '0')
	}
	for _, c := range "the quick brown fox" {
		if strings.ContainsRune("aeiou", c) {
			vowels++
		}
	}
	for i := 0; i < 200; i++ {
		power = power * 3 % 13
	}
	for k := 0; k <= 5; k++ {
		row = append(row, choose(5, k))
	}
	for n := 2; n < 500; n++ {
		total := 0
		for d := 1; d < n; d++ {
			if n%d == 0 {
				total += d
			}
		}
		if total == n {
			perfect = append(perfect, n)
		}
	}
	for n := 1; n <= 15; n++ {
		word := ""
		if n%3 == 0 {
			word = "Fizz"
		}
		if n%5 == 0 {
			word += "Buzz"
		}
		if word == "" {
			word = strconv.Itoa(n)
		}
		words = append(words, word)
	}
	for y := 1900; y <= 2000; y++ {
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			leap++
		}
	}
	show("sum", sum)
	show("factorial", product)
	show("fibonacci", a)
	show("gcd", gcd(1071, 462))
	show("lcm", 21*6/gcd(21, 6))
	show("primes", primes)
	show("factor", factor(13195))
	show("collatz", collatz(27))
	show("digits", digits)
	show("reverse", backwards("stressed"))
	show("palindrome", yes(backwards("racecar") == "racecar"))
	show("vowels", vowels)
	show("frequent", frequent("one two three two one two"))
	show("caesar", caesar("Hello, World", 3))
	show("binary", strconv.FormatInt(37, 2))
	show("hex", strconv.FormatInt(255, 16))
	sort.Ints(values)
	show("sort", values[0], values[1], values[2], values[3], values[4])
	show("search", sort.SearchInts(values, 7))
	show("powmod", power)
	m := [2][2]int{{1, 2}, {3, 4}}
	show("matrix", m[0][0]*m[0][0]+m[0][1]*m[1][0], m[0][0]*m[0][1]+m[0][1]*m[1][1], m[1][0]*m[0][0]+m[1][1]*m[1][0], m[1][0]*m[0][1]+m[1][1]*m[1][1])
	show("pascal", row...)
	show("roman", roman(1994))
	show("anagram", yes(letters("listen") == letters("silent")))
	show("subarray", subarray([]int{-2, 1, -3, 4, -1, 2, 1, -5, 4}))
	show("brackets", yes(isBalanced("{[()]}(")))
	show("hanoi", hanoi(10))
	show("perfect", perfect...)
	show("fizzbuzz", words...)
	show("runs", runs("aaabbc"))
	show("leap", leap)
}
