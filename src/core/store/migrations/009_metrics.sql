-- SPDX-License-Identifier: Apache-2.0
-- Totals of counters and histograms, so that they go on where they were.

CREATE TABLE metrics (
	name TEXT NOT NULL,
	labels TEXT NOT NULL,              -- values, with U+001F between them; '': it has none
	value INTEGER NOT NULL,            -- of a counter its total, of a histogram its sum
	billionths INTEGER NOT NULL,       -- what it is more than that
	count INTEGER NOT NULL,            -- of a histogram
	buckets TEXT NOT NULL,             -- of a histogram: of each alone, with spaces between them
	PRIMARY KEY (name, labels)
) WITHOUT ROWID;
