"""Modelled on jhamrick/nbgrader-demo: a problem set on NumPy and Matplotlib.

Typical are inputs drawn at random without a seed, shapes and types of results, an array that must
or must not be changed, a file that the student's cell writes and the test reads, and functions that
draw on the axes that the test passes in, which it looks at afterwards.
"""

from courses import Course, answer, plain, test

COURSE = Course(
    files={
        "tides.txt": "1.5 2.0 2.5\n3.0 2.0 1.0\n0.5 1.0 4.5",
    },
    cells=[
        plain("import numpy as np\nimport matplotlib.pyplot as plt"),
        plain('tides = np.loadtxt("tides.txt")\ntides.shape'),
        answer(
            "archive",
            """
            # write tides, and the mean of each day, to an archive named means.npz
            ### BEGIN SOLUTION
            np.savez("means.npz", tides=tides, means=tides.mean(axis=1))
            ### END SOLUTION
            """,
        ),
        test(
            "archive-arrays",
            1,
            """
            from numpy.testing import assert_allclose, assert_array_equal

            tides = np.loadtxt("tides.txt")
            archive = np.load("means.npz")
            assert archive["means"].shape == (3,)
            assert_array_equal(archive["tides"], tides)
            assert_allclose(archive["means"], [2, 2, 2])
            print("well done")
            """,
        ),
        answer(
            "center",
            '''
            def center(table):
                """Return a new array: the columns of a table, less their means."""
                ### BEGIN SOLUTION
                centered = table.copy()
                for column in range(table.shape[1]):
                    centered[:, column] -= np.mean(table[:, column])
                return centered
                ### END SOLUTION
            ''',
        ),
        plain("center(tides)"),
        test(
            "center-shape",
            0.25,
            """
            for _ in range(10):
                rows, columns = np.random.randint(1, 9, 2)
                table = np.random.rand(rows, columns)
                assert center(table).shape == (rows, columns)
                assert_allclose(center(table).mean(axis=0), np.zeros(columns), atol=1e-12)
            """,
        ),
        test(
            "center-leaves-its-argument",
            0.75,
            """
            table = np.array([[1.0, -4.0], [3.0, 4.0]])
            centered = center(table)
            assert_array_equal(table, [[1, -4], [3, 4]])
            assert_array_equal(centered, [[-1, -4], [1, 4]])
            centered[0, 0] = 7
            assert table[0, 0] == 1
            """,
        ),
        answer(
            "cap",
            '''
            def cap(values, limit):
                """Set all values of an array that are above a limit to it, in place."""
                ### BEGIN SOLUTION
                values[values > limit] = limit
                ### END SOLUTION
            ''',
        ),
        test(
            "cap-in-place",
            1,
            """
            values = np.array([1, 8, 3, 9])
            assert cap(values, 4) is None
            assert_array_equal(values, [1, 4, 3, 4])
            table = np.arange(6.0).reshape(2, 3)
            cap(table[1], 4)
            assert table.max() == 4
            """,
        ),
        answer(
            "distances",
            '''
            def distances(x, y):
                """Return an array of real numbers: the distances of each of x from each of y."""
                ### BEGIN SOLUTION
                found = np.zeros((x.size, y.size))
                for i in range(x.size):
                    for j in range(y.size):
                        found[i, j] = abs(x[i] - y[j])
                return found
                ### END SOLUTION
            ''',
        ),
        test(
            "distances-values",
            2,
            """
            d = distances(np.arange(3), np.arange(4))
            assert d.shape == (3, 4)
            assert d.dtype == float
            assert_allclose(d[2], [2, 1, 0, 1])
            x, y = np.random.rand(7), np.random.rand(5)
            assert_allclose(distances(x, y), distances(y, x).T)
            assert_allclose(distances(x, x).diagonal(), 0)
            """,
        ),
        answer(
            "picture",
            '''
            def show_distances(axis, x, y):
                """Draw the distances of x and y as a gray picture without ticks, with labels."""
                ### BEGIN SOLUTION
                axis.matshow(distances(x, y), cmap="gray")
                axis.set_xlabel("y")
                axis.set_ylabel("x")
                axis.set_title("distances")
                axis.set_xticks([])
                axis.set_yticks([])
                ### END SOLUTION
            ''',
        ),
        test(
            "picture-on-axes",
            2,
            """
            x, y = np.random.rand(30), np.random.rand(20)
            figure, axis = plt.subplots()
            show_distances(axis, x, y)
            [image] = axis.get_images()
            assert_allclose(image.get_array(), distances(x, y))
            assert image.get_cmap().name == "gray"
            assert axis.get_xlabel() != "" and axis.get_ylabel() != ""
            assert axis.get_title() != ""
            assert_array_equal(axis.get_xticks(), [])
            assert_array_equal(axis.get_yticks(), [])
            plt.close(figure)
            """,
        ),
        answer(
            "line",
            '''
            def plot_running_mean(axis, values):
                """Plot the mean of all values so far against their number, from 1 on."""
                ### BEGIN SOLUTION
                number = np.arange(1, len(values) + 1)
                axis.plot(number, np.cumsum(values) / number, "k-", label="mean so far")
                axis.legend()
                ### END SOLUTION
            ''',
        ),
        test(
            "line-data",
            1,
            """
            figure, axis = plt.subplots()
            plot_running_mean(axis, np.array([4.0, 2.0, 0.0]))
            lines = axis.get_lines()
            assert len(lines) == 1
            assert_allclose(lines[0].get_xydata(), [[1, 4], [2, 3], [3, 2]])
            plt.close(figure)
            """,
        ),
        test(
            "line-legend",
            0.5,
            """
            figure, axis = plt.subplots()
            plot_running_mean(axis, np.random.rand(50))
            assert axis.get_legend() is not None
            assert len(axis.get_legend().get_texts()) == 1
            plt.close(figure)
            """,
        ),
    ],
    changes={
        "another": {
            "archive": """
            means = np.array([np.mean(day) for day in tides])
            with open("means.npz", "wb") as file:
                np.savez(file, means=means, tides=tides)
            """,
            "center": """
            def center(table):
                return table - table.mean(axis=0, keepdims=True)
            """,
            "cap": """
            def cap(values, limit):
                np.minimum(values, limit, out=values)
            """,
            "distances": """
            def distances(x, y):
                return np.abs(x[:, None] - y[None, :]).astype(float)
            """,
            "picture": """
            def show_distances(axis, x, y):
                axis.imshow(distances(x, y), cmap=plt.cm.gray)
                axis.set(xlabel="second", ylabel="first", title="how far", xticks=[], yticks=[])
            """,
            "line": """
            def plot_running_mean(axis, values):
                x = range(1, len(values) + 1)
                y = [values[:n].mean() for n in x]
                axis.plot(x, y, label="running mean")
                axis.legend(loc="best")
            """,
        },
        "wrong": {
            "archive": 'np.savez("means.npz", tides=tides, means=tides.mean(axis=0))',
            "center": """
            def center(table):
                for column in range(table.shape[1]):
                    table[:, column] -= np.mean(table[:, column])
                return table
            """,
            "cap": """
            def cap(values, limit):
                values = np.minimum(values, limit)
            """,
            "distances": """
            def distances(x, y):
                return np.abs(x[:, None] - y[None, :])
            """,
            "picture": """
            def show_distances(axis, x, y):
                plt.matshow(distances(x, y), cmap="gray")
                plt.xlabel("x")
                plt.ylabel("y")
            """,
            "line": """
            def plot_running_mean(axis, values):
                axis.plot(np.cumsum(values) / np.arange(1, len(values) + 1))
            """,
        },
        "careless": {
            "archive": 'np.savez("mean.npz", tides=tides, means=tides.mean(axis=1))',
            "center": """
            def center(table):
                return table - np.mean(table)
            """,
            "cap": """
            def cap(values, limit):
                values[values > limit] = limit
                return values
            """,
            "distances": """
            def distances(x, y):
                return (x[:, None] - y[None, :]) ** 2.0
            """,
            "picture": """
            def show_distances(axis, x, y):
                axis.matshow(distances(x, y))
                axis.set_xticks([])
                axis.set_yticks([])
                axis.set_title("distances")
            """,
            "line": """
            def plot_running_mean(axis, values):
                number = np.arange(len(values))
                axis.plot(number, np.cumsum(values) / (number + 1), label="mean")
                axis.legend()
            """,
        },
        "raises": {
            "archive": 'np.savez("means.npz", tides=tides, means=tides.average(axis=1))',
            "center": """
            def center(table):
                return table - table.mean(axis=2)
            """,
            "cap": """
            def cap(values, limit):
                raise NotImplementedError
            """,
            "picture": """
            def show_distances(axis, x, y):
                axis.matshow(distance(x, y), cmap="gray")
            """,
        },
    },
)
