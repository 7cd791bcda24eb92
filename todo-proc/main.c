#include "todo-proc/todo.h"

int
main(int argc, char **argv)
{
	static struct todo todo = { .lock = -1 };

	return daemon_main(argc, argv, &control_ops, &todo);
}
