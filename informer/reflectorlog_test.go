package informer

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func TestLogOfTheReflectorTellsNoObject(t *testing.T) {
	var log bytes.Buffer
	logger, err := micrologger.New(micrologger.Config{IOWriter: &log})
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{StringData: map[string]string{"password": "swordfish"}}
	sink := newReflectorLog(logger).WithName("reflector").WithValues("object", secret)
	sink.Error(errors.New("broken"), "can't add", "event", watch.Event{Object: secret}, "count", 3)
	sink.Info("closed", "object", *secret, "type", "v1.Secret")
	sink.V(4).Info("chatter")
	sink.Error(notedError{errors.New("known")}, "failed to watch")

	text := log.String()
	for _, want := range []string{"broken", "can't add", `"count":3`, "watch.Event", "closed", "v1.Secret", "failed to watch", `"error":"known"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	for _, unwanted := range []string{"swordfish", "chatter"} {
		if strings.Contains(text, unwanted) {
			t.Errorf("%q is in:\n%s", unwanted, text)
		}
	}
	if got := strings.Count(text, `"level":"error"`); got != 1 {
		t.Errorf("%d lines are errors, want 1:\n%s", got, text)
	}
}
