/* Convolutions of f32 whose image is no larger than their kernel, such as 3 x 3 on 2 x 2 pixels,
 * and their gradients: each pixel of y sees all of x, so y [images, pixels O] is the product of
 * x [images, pixels C] and a matrix that has each element of the weight wherever it is used. That
 * is fewer multiplications than elements times pixels, and one large product. Results do not
 * depend on the number of threads.
 *
 * *_prepare returns false if the call is another, and *_run then, too. `gradient`: of the input. */
#ifndef KILN_BACKEND_CPU_IMAGES_DENSE_CONV_H
#define KILN_BACKEND_CPU_IMAGES_DENSE_CONV_H

#include "graph/backend.h"

bool kiln_dense_conv_prepare(KilnCall *call, bool gradient);
bool kiln_dense_conv_run(KilnCall *call, bool gradient);

bool kiln_dense_weight_prepare(KilnCall *call);
bool kiln_dense_weight_run(KilnCall *call);

#endif
