/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress_bar.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "cli/color.h"

#define REDRAW_US (100 * USEC_PER_MS)
#define WIDTH     30
#define CLEAR     "\r\033[K"

void progress_bar_start(struct progress_bar *bar, const char *name, uint64_t total)
{
	const char *slash = strrchr(name, '/');

	*bar = (struct progress_bar){.name = slash && slash[1] ? slash + 1 : name,
	                             .total = total,
	                             .on = color_has_escapes(STDERR_FILENO),
	                             .shown_us = clock_us()};
}

static void draw(const struct progress_bar *bar)
{
	double part = bar->total ? (double)bar->done / (double)bar->total : 0;
	int filled = part >= 1 ? WIDTH : (int)(part * WIDTH);

	(void)fprintf(stderr, CLEAR "%.30s ", bar->name);
	if (bar->total)
		(void)fprintf(stderr, "[%.*s%*s] %3.0f %% ", filled,
		              "##############################", WIDTH - filled, "",
		              100 * (part < 1 ? part : 1));
	(void)fprintf(stderr, "%.1f MiB", (double)bar->done / (double)MIB);
	(void)fflush(stderr);
}

void progress_bar_add(struct progress_bar *bar, uint64_t bytes)
{
	uint64_t now = clock_us();

	bar->done += bytes;
	if (!bar->on || now - bar->shown_us < REDRAW_US)
		return;
	bar->shown_us = now;
	draw(bar);
}

void progress_bar_end(struct progress_bar *bar)
{
	if (bar->on)
		(void)fputs(CLEAR, stderr);
	bar->on = false;
}
