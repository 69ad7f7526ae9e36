package ownwritescontext_test

import (
	"context"
	"testing"

	"github.com/operatorkit/operatorkit/context/ownwritescontext"
)

type keeper struct{ kept bool }

func (k *keeper) KeepOwn() { k.kept = true }

func TestTheKeeperOfTheContextIsAsked(t *testing.T) {
	ownwritescontext.SetKept(t.Context())
	var k keeper
	ownwritescontext.SetKept(context.WithValue(t.Context(), ownwritescontext.Key, &k))
	if !k.kept {
		t.Error("own writes are not kept")
	}
}
