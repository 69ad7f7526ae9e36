package story

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	gateways "github.com/operatorkit/operatorkit/examples/nats-controller"
	"github.com/operatorkit/operatorkit/examples/nats-controller/registry"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
)

// watch tells of every change in a bucket until the story ends.
func (w *world) watch(ctx context.Context, bucket string) error {
	kv, err := w.config.JetStream.KeyValue(ctx, bucket)
	if err != nil {
		return fmt.Errorf("watch bucket %s: %w", bucket, err)
	}
	t := teller{w.Demo, map[string]map[string]any{}}
	w.Go("the watch of bucket "+bucket, func(ctx context.Context) error {
		watcher, err := kv.WatchAll(ctx)
		if err != nil {
			return err
		}
		for {
			select {
			case <-ctx.Done():
				return nil
			case entry := <-watcher.Updates():
				if entry != nil {
					t.tell(bucket, entry)
				}
			}
		}
	})
	return nil
}

// teller tells how things change, and remembers how they were.
type teller struct {
	*demo.Demo
	last map[string]map[string]any
}

func (t teller) tell(bucket string, entry jetstream.KeyValueEntry) {
	name := strings.TrimSuffix(bucket, "s") + "/" + entry.Key()
	switch {
	case bucket == gateways.EventsBucket:
		t.event(entry.Value())
	case entry.Operation() != jetstream.KeyValuePut:
		t.changed(name, nil)
	default:
		t.changed(name, fieldsOf(entry.Value()))
	}
}

// event tells what an event says.
func (t teller) event(value []byte) {
	var event natscontroller.Event
	if json.Unmarshal(value, &event) == nil && event.Reason != "" {
		t.Change("!", "event/"+event.Object.Key, event.Type+" "+event.Reason+": "+event.Message)
	}
}

// changed tells how a thing is now; nil says that it is gone.
func (t teller) changed(name string, now map[string]any) {
	before, existed := t.last[name]
	switch {
	case now == nil && existed:
		t.Change("-", name, "deleted")
		delete(t.last, name)
	case now == nil:
	case !existed:
		t.Change("+", name, "created")
		t.last[name] = now
	default:
		if fields := demo.Changed(before, now); fields != "" {
			t.Change("~", name, fields)
		}
		t.last[name] = now
	}
}

// fieldsOf are the fields of an entry that are worth telling. Conditions are told by their types.
func fieldsOf(value []byte) map[string]any {
	var entity gateways.Gateway // which has all metadata; the other fields are taken as they are
	fields := map[string]any{}
	if json.Unmarshal(value, &fields) != nil || json.Unmarshal(value, &entity) != nil {
		return map[string]any{"value": string(value)}
	}
	conditions := map[string]any{}
	for _, c := range entity.Conditions {
		conditions[c.Type] = c.Reason
	}
	fields["metadata"] = map[string]any{"deletionRequested": entity.DeletionTimestamp != nil, "conditions": conditions}
	return fields
}

// tellOfRegistry tells of every change in the registry.
func (w *world) tellOfRegistry(server *registry.Server) {
	t := teller{w.Demo, map[string]map[string]any{}}
	server.OnChange = func(name string, now *registry.Registration) {
		if now == nil {
			t.changed("registration/"+name, nil)
			return
		}
		t.changed("registration/"+name, map[string]any{"address": now.Address, "hosts": strings.Join(now.Hosts, " ")})
	}
}
