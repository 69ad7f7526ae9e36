// Command demo tells the story of the example, as "make run EXAMPLE=serviceprovider" does.
package main

import (
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	"github.com/operatorkit/operatorkit/examples/serviceprovider/story"
)

func main() { demo.Main(story.New(func(_ string, config *rest.Config) *rest.Config { return config })) }
