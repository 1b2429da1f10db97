"""Questions that take several child runs: compile again, bisect the compiler, print values, shrink the inputs."""
