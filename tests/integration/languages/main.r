# SPDX-License-Identifier: Apache-2.0
source("util.r")
mode <- commandArgs(TRUE)[1]
if (mode == "hello") cat("hello", answer(), "\n", sep = " ") else
if (mode == "stdin") writeLines(readLines(file("stdin"))) else
if (mode == "env") cat(Sys.getenv("WORD"), " ", getwd(), "\n", sep = "") else
if (mode == "args") cat(paste0("[", commandArgs(TRUE)[-1], "]", collapse = ""), readLines("data.txt"), "\n", sep = "") else
if (mode == "signal") system("kill -KILL $PPID") else
if (mode == "exit") quit(status = 3) else
if (mode == "error") stop("on purpose") else
if (mode == "timeout") repeat {} else
if (mode == "memory") { kept <- list(); repeat kept[[length(kept) + 1]] <- runif(1e6) } else
if (mode == "fork") repeat system("sleep 100", wait = FALSE) else
if (mode == "unicode") cat("grüße 日本語 🎉\n") else
if (mode == "output") for (i in 1:16384) cat(strrep("x", 63), "\n", sep = "") else
if (mode == "sort") {
  x <- 42
  numbers <- numeric(1000000)
  for (i in 1:1000000) { x <- (x * 1664525 + 1013904223) %% 4294967296; numbers[i] <- x }
  numbers <- sort(numbers)
  cat(sprintf("%.0f %.0f\n", numbers[500001], numbers[1000000]))
}
