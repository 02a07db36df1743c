/* Small made-up files of every kind that the built-in datamodules read. */
#ifndef KILN_CLI_CONTRACT_SAMPLE_DATA_H
#define KILN_CLI_CONTRACT_SAMPLE_DATA_H

#include "kiln/base.h"

/* Write them into the folder, which is made:
 *   rows.csv (a, b, kind, class, y), rows.svm
 *   texts.csv (text, label), topics.jsonl (text, labels), words.conll, from.txt, to.txt, prose.txt
 *   images/{train,val,test}/{a,b}/N.png, images.csv (image, label), lines.csv (image, text)
 *   masks/{images,masks}/{train,val,test}/N.png, with classes 0, 1, 2
 *   coco/, yolo.yaml, mnist/, shard.tar
 * Images are 64 pixels high and wide, those of mnist 28. */
KILN_NODISCARD KilnStatus kiln_sample_data_write(const char *folder, KilnError *err);

#endif
