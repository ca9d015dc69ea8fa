/* Prints what cuInit returned, called directly (-DDIRECT) or by the library that keeps its address. */
#include <stdio.h>

#ifdef DIRECT
int cuInit(unsigned flags);
#define CALL cuInit(0)
#else
int driver_init(void);
#define CALL driver_init()
#endif

int main(void)
{
    printf("cuInit %d\n", CALL);
    return 0;
}
