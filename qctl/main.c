/* qctl - messages in the queues (qctl(8)). */
#include "qctl/qctl.h"

int
main(int argc, char **argv)
{
	return qctl_main(argc, argv);
}
