/* setqload - tell the supervisor the load of a queue (setqload(8)). */
#include "setqload/setqload.h"

int
main(int argc, char **argv)
{
	return setqload_main(argc, argv);
}
