/* libidn2 as all tests here have it: counted, and without memory once. */
#ifndef TEST_IDN_SEAM_H
#define TEST_IDN_SEAM_H

extern unsigned idn_seam_conversions;
extern unsigned idn_seam_fail_at; /* that one of them, from 1; 0: none */

#endif
