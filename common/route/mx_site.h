/* route/mx_site.h - names of destinations that domains of the same MX hosts
 * share (docs/SITES.md, "Domains of the same MX hosts").
 *
 *	mx:HOST+HOST       mx:HOST+COUNT:HASH       mx:+COUNT:HASH
 *
 * No next hop has such a name: behind its colon only a port may stand, and
 * neither a host nor a hash alone is one. Pure; cannot fail.
 */
#ifndef ROUTE_MX_SITE_H
#define ROUTE_MX_SITE_H

#include "base/base.h"

#define MX_SITE_PREFIX "mx:"
#define MX_SITE_MAX    200 /* octets, without the NUL */

/* Does a destination of SMTP have such a name? By its prefix; "mx:25" is a port
 * of a host. Names of mailboxes may look the same. */
bool mx_site_is(const char *destination);
/* Is it a name that an agent may make: its length, its octets? */
bool mx_site_fits(const char *name, size_t len);

#endif
