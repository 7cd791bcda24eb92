#include "idn_seam.h"

#include <dlfcn.h>
#include <idn2.h>

unsigned idn_seam_conversions;
unsigned idn_seam_fail_at;

/* Replaces the function of libidn2, counts the call, and calls that function.
 */
int
idn2_lookup_u8(const uint8_t *src, uint8_t **lookupname, int flags)
{
	int (*real)(const uint8_t *, uint8_t **, int);

	*(void **)&real = dlsym(RTLD_NEXT, "idn2_lookup_u8");
	if (++idn_seam_conversions == idn_seam_fail_at)
		return IDN2_MALLOC;
	return real(src, lookupname, flags);
}
