#include "qsim/measure.h"

#include <math.h>
#include <string.h>

#define COLUMNS   (2 * PLOT_WIDTH) /* of dots */
#define LINES     2
#define DOTS_HIGH (4 * LINES)
#define LABEL     26
#define LEAST     0.001 /* seconds: what is less is drawn as this */

static double
seconds(double delay)
{
	return delay < LEAST ? LEAST : delay;
}

void
plot_axis_add(struct plot_axis *axis, const double *delays, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		double d = seconds(delays[i]);

		while (axis->low == 0 || d < axis->low)
			axis->low = axis->low == 0 ? pow(10, floor(log10(d)))
						   : axis->low / 10;
		while (axis->high < 10 * axis->low || d >= axis->high)
			axis->high =
			    axis->high == 0 ? 10 * axis->low : axis->high * 10;
	}
}

static uint32_t
column(const struct plot_axis *axis, double delay)
{
	double part =
	    log10(seconds(delay) / axis->low) / log10(axis->high / axis->low);

	part = fmax(0, fmin(part * COLUMNS, COLUMNS - 1));
	return (uint32_t)part;
}

/* The dots of a braille character, column by column from below. */
static const unsigned char dots[2][4] = {
	{ 0x40, 0x04, 0x02, 0x01 },
	{ 0x80, 0x20, 0x10, 0x08 },
};

static unsigned int
dots_of(uint32_t height, uint32_t line, uint32_t side)
{
	const uint32_t base = 4 * (LINES - 1 - line);
	unsigned int bits = 0;
	uint32_t i;

	for (i = 0; i < 4; i++)
		if (height > base + i)
			bits |= dots[side][i];
	return bits;
}

/* U+2800 and the dots, as UTF-8. */
static int
add_braille(struct buf *out, unsigned int bits)
{
	const char text[] = {
		(char)0xe2,
		(char)(0xa0 | bits >> 6),
		(char)(0x80 | (bits & 0x3f)),
	};

	return buf_add(out, text, sizeof(text));
}

/* A column with any delay has a dot. */
static void
heights(const struct plot_axis *axis, const double *delays, uint32_t n,
    uint32_t height[COLUMNS])
{
	uint32_t count[COLUMNS] = { 0 }, most = 1, i;

	for (i = 0; i < n; i++)
		count[column(axis, delays[i])]++;
	for (i = 0; i < COLUMNS; i++)
		most = count[i] > most ? count[i] : most;
	for (i = 0; i < COLUMNS; i++)
		height[i] =
		    (uint32_t)(((uint64_t)count[i] * DOTS_HIGH + most - 1) /
			most);
}

int
plot_add_bars(const struct plot_axis *axis, const char *label,
    const double *delays, uint32_t n, struct buf *out)
{
	uint32_t height[COLUMNS], line, i;
	int r = 0;

	heights(axis, delays, n, height);
	for (line = 0; r == 0 && line < LINES; line++) {
		r = buf_printf(out, "  %-*.*s ", LABEL, LABEL,
		    line == LINES - 1 ? label : "");
		for (i = 0; r == 0 && i < PLOT_WIDTH; i++)
			r = add_braille(out,
			    dots_of(height[2 * i], line, 0) |
				dots_of(height[2 * i + 1], line, 1));
		if (r == 0)
			r = buf_add_char(out, '\n');
	}
	return r;
}

/* "10 s" below the place of each power of ten. */
int
plot_add_axis(const struct plot_axis *axis, struct buf *out)
{
	struct buf line = { 0 };
	double t;
	int r = buf_printf(&line, "  %-*s ", LABEL, "");

	for (t = axis->low; r == 0 && t <= axis->high * 0.5; t *= 10) {
		const size_t at = LABEL + 3 + column(axis, t * 1.000001) / 2;

		while (r == 0 && line.len < at)
			r = buf_add_char(&line, ' ');
		if (r == 0)
			r = buf_printf(&line, "|%g s", t);
	}
	if (r == 0)
		r = buf_printf(out, "%s\n", buf_str(&line));
	buf_done(&line);
	return r;
}
