/* Calls of libidn2 by the tests of common: counted, and one call can be made to
 * fail for lack of memory. */
#ifndef TEST_IDN_SEAM_H
#define TEST_IDN_SEAM_H

extern unsigned idn_seam_conversions;
extern unsigned idn_seam_fail_at; /* that one of them, from 1; 0: none */

#endif
