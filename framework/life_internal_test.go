package framework

import (
	"context"
	"io"
	"testing"
	"testing/synctest"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/informer"
)

// keeping is a source that can be asked what it holds.
type keeping struct{ *informer.Push }

func (k keeping) GetLive(_ context.Context, key informer.Key) (obj any, exists bool, err error) {
	return k.Get(key)
}

type confirming struct{}

func (confirming) Name() string                                   { return "confirming" }
func (confirming) EnsureCreated(ctx context.Context, _ any) error { return Confirm(ctx) }
func (confirming) EnsureDeleted(context.Context, any) error       { return nil }

func TestR11WhatWasConfirmedIsForgottenWithTheObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		source := keeping{informer.NewPush("objects")}
		f, err := New(Config{Source: source, Resources: []Resource{confirming{}}, Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- f.Run(ctx) }()
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "life", ResourceVersion: "1"}}
		key := informer.Key{Name: "a"}
		if err := source.Update(obj.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, ok := f.confirmed.Get(key); !ok {
			t.Error("it is not remembered that the object was confirmed")
		}
		if err := source.Delete(obj); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if known, ok := f.confirmed.Get(key); ok {
			t.Errorf("%v is remembered of an object that is gone", known)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
