"""What `teach.train` is made of: examples with their loss mask, packed batches, the network, the trainer, its folders.

examples -> packing -> trainer (likelihood)      with `network` loaded and `run_folder` holding what is unfinished
"""
