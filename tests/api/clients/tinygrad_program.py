"""tinygrad's CUDA backend on the stand-in driver: a matrix product, a softmax, a convolution and some steps of training."""
import os
import sys

os.environ.setdefault("DEV", "CUDA")
os.environ.setdefault("TRAINING", "1")
try:
    import numpy as np
    from tinygrad import Device, Tensor, nn
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

assert Device.DEFAULT.startswith("CUDA"), Device.DEFAULT
random = np.random.default_rng(7)
a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((33, 65), (65, 17)))
np.testing.assert_allclose((Tensor(a) @ Tensor(b)).numpy(), a @ b, atol=1e-4)
np.testing.assert_allclose(Tensor(a).softmax(axis=1).sum(axis=1).numpy(), np.ones(33), atol=1e-5)
image = Tensor(random.standard_normal((1, 3, 8, 8)).astype(np.float32))
kernel = Tensor(random.standard_normal((4, 3, 3, 3)).astype(np.float32))
wanted = sum(image.numpy()[0, c, i:i + 6, j:j + 6] * kernel.numpy()[0, c, i, j] for c in range(3) for i in range(3) for j in range(3))
np.testing.assert_allclose(image.conv2d(kernel).numpy()[0, 0], wanted, atol=1e-4)


class Net:
    def __init__(self):
        self.first, self.second = nn.Linear(4, 16), nn.Linear(16, 1)

    def __call__(self, x):
        return self.second(self.first(x).relu())


net = Net()
optimiser = nn.optim.SGD(nn.state.get_parameters(net), lr=0.05)
inputs = Tensor(random.standard_normal((32, 4)).astype(np.float32))
targets = inputs.sum(axis=1, keepdim=True)
losses = []
for _ in range(6):
    optimiser.zero_grad()
    loss = ((net(inputs) - targets) ** 2).mean().backward()
    optimiser.step()
    losses.append(loss.item())
assert losses[-1] < losses[0], losses
print("ok")
