#include "deliver-local/local.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(cap) (UINT32_C(1) << (cap))

/* The work that needs each of them. */
static const struct {
	uint32_t bits;
	const char *name;
} needed[] = {
	{ BIT(CAP_SETUID) | BIT(CAP_SETGID),
	    "CAP_SETUID and CAP_SETGID: recipients cannot be become" },
	{ BIT(CAP_KILL), "CAP_KILL: deliveries that hang cannot be ended" },
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
			*ret_missing = needed[i].name;
	}
	keep &= data[0].permitted;
	data[0] = (struct __user_cap_data_struct){ .effective = keep,
		.permitted = keep };
	data[1] = (struct __user_cap_data_struct){ 0 };
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}
