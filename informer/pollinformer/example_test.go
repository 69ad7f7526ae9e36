package pollinformer_test

import (
	"context"
	"fmt"
	"io"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/pollinformer"
)

func ExampleNew() {
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		fmt.Println(err)
		return
	}
	planets, err := pollinformer.New(pollinformer.Config[string]{
		Name: "planets",
		List: func(context.Context) (map[informer.Key]string, error) {
			return map[informer.Key]string{{Name: "mars"}: "red"}, nil
		},
		Logger: logger,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	planets.Subscribe(func(e informer.Event) { fmt.Println(e.Type, e.Key.Name, e.Object) })

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- planets.Run(ctx) }()
	fmt.Println(planets.WaitForSync(ctx))
	cancel()
	fmt.Println(<-done)
	// Output:
	// added mars red
	// <nil>
	// <nil>
}
