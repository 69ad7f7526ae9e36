// Command demo tells the story of the example, as "make run EXAMPLE=nats-controller" does.
package main

import (
	"github.com/operatorkit/operatorkit/examples/internal/demo"
	"github.com/operatorkit/operatorkit/examples/nats-controller/story"
)

func main() { demo.Main(story.New()) }
