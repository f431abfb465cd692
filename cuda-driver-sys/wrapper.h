/* The input of bindgen: the header from which the raw bindings are generated. */
#include <cuda.h>
