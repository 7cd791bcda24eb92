#include "deliver-local/local.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(cap) (UINT32_C(1) << (cap))

/* Capabilities, and what cannot be done without them. */
static const struct {
	uint32_t bits;
	const char *trouble;
} needed[] = {
	{ BIT(CAP_SETUID) | BIT(CAP_SETGID),
	    "cannot switch to the recipient's user: CAP_SETUID and CAP_SETGID "
	    "are missing" },
	{ BIT(CAP_KILL),
	    "cannot end deliveries that hang: CAP_KILL is missing" },
};

int
privileges_drop(const char **ret_missing)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	uint32_t keep = 0;
	size_t i;

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	*ret_missing = "";
	for (i = ARRAY_LEN(needed); i-- > 0;) {
		keep |= needed[i].bits;
		if ((data[0].permitted & needed[i].bits) != needed[i].bits)
			*ret_missing = needed[i].trouble;
	}
	keep &= data[0].permitted;
	data[0] = (struct __user_cap_data_struct){ .effective = keep,
		.permitted = keep };
	data[1] = (struct __user_cap_data_struct){ 0 };
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}
