/* base/date.h - the date and time of a header field (RFC 5322 section
 * 3.3): local time with its zone, names in English. */
#ifndef BASE_DATE_H
#define BASE_DATE_H

#include "base/base.h"

#define DATE_SIZE 64

void date_format(usec_t wall, char out[DATE_SIZE]);

#endif
