#include "base/date.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void
date_format(usec_t wall, char out[DATE_SIZE])
{
	static const char days[7][4] = { "Sun", "Mon", "Tue", "Wed", "Thu",
		"Fri", "Sat" };
	static const char months[12][4] = { "Jan", "Feb", "Mar", "Apr", "May",
		"Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	time_t t = (time_t)(wall / USEC_PER_SEC);
	struct tm tm;
	long zone;

	if (localtime_r(&t, &tm) == NULL)
		tm = (struct tm){ .tm_mday = 1, .tm_year = 70, .tm_wday = 4 };
	zone = tm.tm_gmtoff / 60;
	snprintf(out, DATE_SIZE, "%.3s, %d %.3s %d %02d:%02d:%02d %c%02ld%02ld",
	    days[tm.tm_wday], tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900,
	    tm.tm_hour, tm.tm_min, tm.tm_sec, zone < 0 ? '-' : '+',
	    labs(zone) / 60 % 100, labs(zone) % 60);
}
