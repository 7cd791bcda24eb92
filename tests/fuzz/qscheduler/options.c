/* The command line of the supervisor, and a load that somebody asks for. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/ask.h"
#include "qscheduler/supervisor/options.h"
#include "qscheduler/supervisor/supervisor.h"

static void
check_load(struct fuzz_in *in)
{
	const struct msg_SET_LOAD_FOR m = {
		.local_used = (uint32_t)fuzz_number(in, 4),
		.local_limit = (uint32_t)fuzz_number(in, 4),
		.remote_used = (uint32_t)fuzz_number(in, 4),
		.remote_limit = (uint32_t)fuzz_number(in, 4),
	};
	bool given = m.local_limit != 0 || m.remote_limit != 0;
	bool right = given && m.local_used <= m.local_limit &&
	    m.remote_used <= m.remote_limit && m.local_limit <= ASK_LIMIT_MAX &&
	    m.remote_limit <= ASK_LIMIT_MAX;
	uint32_t pct = 4242;
	const char *why = NULL;
	int r = request_load(&m, &pct, &why);

	MUST(r == (right ? 0 : given ? -ERANGE : -EINVAL));
	MUST(right ? pct <= 100 : pct == 4242 && why != NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	struct buf error = { 0 };
	struct fuzz_args args, given;
	struct options o;
	int r;

	check_load(&in);
	in = (struct fuzz_in){ data, size };
	fuzz_args(&in, &args);
	given = args;
	FUZZ_FILL(o);
	r = options_parse(args.argc, args.argv, &o, &error);
	if (r < 0) {
		MUST(r == -EINVAL && FUZZ_UNTOUCHED(o));
		MUST(error.len > 0 && error.len < 250);
		MUST(fuzz_is_shown(error.data, error.len));
	} else {
		MUST(o.command <= COMMAND_VERSION && o.mode <= MODE_KEEP);
		MUST(o.ready_fd >= -1);
	}
	fuzz_args_done(&given);
	buf_done(&error);
	return 0;
}
