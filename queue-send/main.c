#include "base/subuid.h"
#include "queue-send/control.h"

int
main(int argc, char **argv)
{
	static struct send send = {
		.lock = -1, .pub.requests = -1, .subuid_file = SUBUID_FILE
	};

	return daemon_main(argc, argv, &control_ops, &send);
}
