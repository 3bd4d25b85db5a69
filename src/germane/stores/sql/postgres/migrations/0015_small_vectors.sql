-- Packed vectors have 8 bits a number now, and are packed again from their halfvecs. See `memory_blocks.py`.
UPDATE memory_blocks SET vectors = NULL;
