#include "base/date.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void
date_format(usec_t wall, char out[DATE_SIZE])
{
	const time_t t = (time_t)(wall / USEC_PER_SEC);
	char day[8], rest[48];
	struct tm tm;

	if (localtime_r(&t, &tm) == NULL)
		tm = (struct tm){ .tm_mday = 1, .tm_year = 70, .tm_wday = 4 };
	/* No program sets the locale of times: names are in English. */
	(void)strftime(day, sizeof(day), "%a", &tm);
	(void)strftime(rest, sizeof(rest), "%b %Y %H:%M:%S %z", &tm);
	snprintf(out, DATE_SIZE, "%s, %d %s", day, tm.tm_mday, rest);
}
