// Command demo tells the story of the example, as "make run EXAMPLE=machines" does.
package main

import (
	"github.com/operatorkit/operatorkit/examples/internal/demo"
	"github.com/operatorkit/operatorkit/examples/machines/story"
)

func main() { demo.Main(story.New()) }
