package retryresource_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/retryresource"
)

// A resource that fails now and then succeeds within one reconciliation.
func ExampleWrap() {
	calls := 0
	flaky := &plain{name: "flaky", ensure: func(context.Context, any) error {
		if calls++; calls < 3 {
			return errors.New("try again")
		}
		return nil
	}}
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		panic(err)
	}

	resources, err := retryresource.Wrap([]framework.Resource{flaky}, retryresource.Config{
		Logger: logger,
		BackOffFactory: func() backoff.BackOff {
			return backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Millisecond), 5)
		},
	})
	if err != nil {
		panic(err)
	}
	err = framework.ProcessUpdate(context.Background(), "an object", resources)
	fmt.Println(err, calls)
	// Output: <nil> 3
}
