package outlive_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operatorkit/operatorkit/internal/outlive"
)

func TestTheTimeBeginsWhenTheOtherContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("why")
		ctx, end := context.WithCancelCause(t.Context())
		longer, cancel := outlive.Context(ctx, time.Minute)
		defer cancel()
		time.Sleep(time.Hour)
		end(why)
		time.Sleep(time.Minute - time.Second)
		if longer.Err() != nil {
			t.Error("it has ended too early")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := context.Cause(longer); !errors.Is(got, why) {
			t.Errorf("its cause is %v, want %v", got, why)
		}
	})
}
