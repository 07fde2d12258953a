// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

using List = std::vector<long>;

static List up_to(long from, long to) { List list(to - from + 1); std::iota(list.begin(), list.end(), from); return list; }
static long total(const List &list) { return std::accumulate(list.begin(), list.end(), 0L); }
static std::string yes(bool truth) { return truth ? "yes" : "no"; }
static std::string backwards(std::string text) { return {text.rbegin(), text.rend()}; }
static std::string letters(std::string text) { std::sort(text.begin(), text.end()); return text; }
static long hanoi(long n) { return n ? 2 * hanoi(n - 1) + 1 : 0; }
static long collatz(long n) { return n == 1 ? 0 : 1 + collatz(n % 2 ? 3 * n + 1 : n / 2); }
static long choose(long n, long k) { return k == 0 || k == n ? 1 : choose(n - 1, k - 1) + choose(n - 1, k); }

template <typename F> static List only(const List &list, F keep)
{
	List result;
	std::copy_if(list.begin(), list.end(), std::back_inserter(result), keep);
	return result;
}

static std::string join(const List &list)
{
	std::ostringstream out;
	for (long value : list) out << ' ' << value;
	return out.str().substr(1);
}

static long fibonacci(int n)
{
	long a = 0, b = 1;
	for (; n > 0; n--) { b += a; a = b - a; }
	return a;
}

static long factor(long n)
{
	for (long p = 2; p * p <= n;) if (n % p) p++; else n /= p;
	return n;
}

static std::string frequent(const std::string &text)
{
	std::istringstream in(text);
	std::map<std::string, int> counts;
	for (std::string word; in >> word;) counts[word]++;
	return std::max_element(counts.begin(), counts.end(), [](auto &a, auto &b) { return a.second < b.second; })->first;
}

static std::string caesar(std::string text, int by)
{
	for (char &c : text) if (isalpha(c)) { char base = islower(c) ? 'a' : 'A'; c = (c - base + by) % 26 + base; }
	return text;
}

static std::string binary(int n) { return n ? binary(n / 2) + char('0' + n % 2) : ""; }

static std::string roman(int n)
{
	std::string text;
	for (auto [value, word] : std::vector<std::pair<int, std::string>>{{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"},
	     {90, "XC"}, {50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"}})
		for (; n >= value; n -= value) text += word;
	return text;
}

static long subarray(const List &list)
{
	long best = list[0], here = 0;
	for (long value : list) { here = std::max(value, here + value); best = std::max(best, here); }
	return best;
}

static bool is_balanced(const std::string &text)
{
	std::string stack, pairs = "()[]{}";
	for (char c : text) {
		size_t at = pairs.find(c);
		if (at % 2 == 0) stack += pairs[at + 1];
		else if (stack.empty() || stack.back() != c) return false;
		else stack.pop_back();
	}
	return stack.empty();
}

static std::string runs(const std::string &text)
{
	std::ostringstream out;
	for (size_t i = 0, n; i < text.size(); i += n) {
		n = std::min(text.find_first_not_of(text[i], i), text.size()) - i;
		out << text[i] << n;
	}
	return out.str();
}

static std::string fizzbuzz(long n)
{
	std::string word = std::string(n % 3 ? "" : "Fizz") + (n % 5 ? "" : "Buzz");
	return " " + (word.empty() ? std::to_string(n) : word);
}

int main()
{
	auto show = [](const char *name, auto value) { std::cout << name << ' ' << value << '\n'; };
	List values = {5, 3, 9, 1, 7}, m = {1, 2, 3, 4};
	std::string text = "the quick brown fox", words, digits = std::to_string(1 << 15);

	show("sum", total(up_to(1, 100)));
	List ten = up_to(1, 10);
	show("factorial", std::accumulate(ten.begin(), ten.end(), 1L, std::multiplies<>()));
	show("fibonacci", fibonacci(50));
	show("gcd", std::gcd(1071, 462));
	show("lcm", std::lcm(21, 6));
	show("primes", only(up_to(2, 999), [](long n) { return only(up_to(1, n), [n](long d) { return n % d == 0; }).size() == 2; }).size());
	show("factor", factor(13195));
	show("collatz", collatz(27));
	show("digits", std::accumulate(digits.begin(), digits.end(), 0, [](int a, char c) { return a + c - '0'; }));
	show("reverse", backwards("stressed"));
	show("palindrome", yes(backwards("racecar") == "racecar"));
	show("vowels", std::count_if(text.begin(), text.end(), [](char c) { return std::string("aeiou").find(c) != std::string::npos; }));
	show("frequent", frequent("one two three two one two"));
	show("caesar", caesar("Hello, World", 3));
	show("binary", binary(37));
	std::cout << "hex " << std::hex << 255 << std::dec << '\n';
	std::sort(values.begin(), values.end());
	show("sort", join(values));
	show("search", std::lower_bound(values.begin(), values.end(), 7) - values.begin());
	long power = 1;
	for (int i = 0; i < 200; i++) power = power * 3 % 13;
	show("powmod", power);
	show("matrix", join({m[0] * m[0] + m[1] * m[2], m[0] * m[1] + m[1] * m[3], m[2] * m[0] + m[3] * m[2], m[2] * m[1] + m[3] * m[3]}));
	List row = up_to(0, 5);
	for (long &k : row) k = choose(5, k);
	show("pascal", join(row));
	show("roman", roman(1994));
	show("anagram", yes(letters("listen") == letters("silent")));
	show("subarray", subarray({-2, 1, -3, 4, -1, 2, 1, -5, 4}));
	show("brackets", yes(is_balanced("{[()]}(")));
	show("hanoi", hanoi(10));
	show("perfect", join(only(up_to(2, 499), [](long n) { return total(only(up_to(1, n - 1), [n](long d) { return n % d == 0; })) == n; })));
	for (long n : up_to(1, 15)) words += fizzbuzz(n);
	show("fizzbuzz", words.substr(1));
	show("runs", runs("aaabbc"));
	show("leap", only(up_to(1900, 2000), [](long y) { return y % 4 == 0 && (y % 100 || y % 400 == 0); }).size());
}
