#include "queue-drop/door.h"

int
main(int argc, char **argv)
{
	return door_main(argc, argv);
}
