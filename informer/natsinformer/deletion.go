package natsinformer

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/informer"
)

var (
	_ informer.Source     = (*Source[Entity])(nil)
	_ informer.LiveReader = (*Source[Entity])(nil)
	_ informer.Comparer   = (*Source[Entity])(nil)
	_ informer.Remover    = (*Source[Entity])(nil)
)

// historyBatch is the number of keys per request.
const historyBatch = 200

// keyCharacters matches texts of the characters that the client library allows in keys.
var keyCharacters = regexp.MustCompile(`^[-/_=.a-zA-Z0-9]+$`)

// IsKey reports whether a text can be the key of an entry. A key has letters, digits, '-', '/',
// '_', '=' and single dots. A dot is not the first or last character.
func IsKey(key string) bool {
	return keyCharacters.MatchString(key) && key[0] != '.' && key[len(key)-1] != '.' && !strings.Contains(key, "..")
}

// Remove implements [informer.Remover]. It purges an entity that has a deletion timestamp and no
// finalizers. Of an entity that was plainly deleted, it purges the delete marker and the earlier
// values, so that the deletion is not announced again after a restart. Anything else is left
// unchanged.
func (s *Source[T]) Remove(ctx context.Context, obj any) error {
	entity, ok := obj.(T)
	if !ok {
		return fmt.Errorf("remove from source %q: a %T is not one of its entities", s.Name(), obj)
	}
	meta := entity.EntityMeta()
	switch {
	case meta.gone && meta.revision != 0:
		return s.removeMarker(ctx, entity)
	case meta.gone, meta.DeletionTimestamp == nil, len(meta.Finalizers) > 0:
		return nil
	}
	err := s.bucket.Purge(ctx, entity)
	if !apierrors.IsConflict(err) {
		return err
	}
	if now, getErr := s.bucket.Get(ctx, entity.GetName()); getErr == nil && replaces(now, entity) {
		return nil
	}
	return err
}

// removeMarker purges the delete marker of an entity that is gone, or a later marker of the same
// key. It does nothing if the key has a value again.
func (s *Source[T]) removeMarker(ctx context.Context, gone T) error {
	key, revision := gone.GetName(), gone.EntityMeta().revision
	for {
		err := s.bucket.removeRevision(ctx, byPurge, key, revision)
		if !apierrors.IsConflict(err) {
			return err
		}
		later, err := s.bucket.marker(ctx, key)
		if err != nil || later <= revision {
			return err
		}
		revision = later
	}
}

// marker returns the revision of the delete marker of a key, or 0 if it has none.
func (b *Bucket[T]) marker(ctx context.Context, key string) (uint64, error) {
	msg, err := b.read(ctx, key)
	if err != nil {
		return 0, b.failed("look for the marker of", key, err)
	}
	if !msg.deleted {
		return 0, nil
	}
	return msg.revision, nil
}

// deletedBefore returns the last values of entries that the listing shows as deleted and that the
// store never had. They were deleted while nothing was watching, and their deletion may not have
// been processed. A bucket without history does not have these values, and a purge leaves none.
func (s *session[T]) deletedBefore(ctx context.Context) ([]T, error) {
	mirror := s.source.mirror
	if s.opened.history <= 1 || !mirror.keeps() {
		return nil, nil
	}
	var keys []string
	for key, entry := range s.listing.newest {
		if entry.Operation() == jetstream.KeyValueDelete && mirror.lacks(entry) && s.source.config.Filter(key) && IsKey(key) {
			keys = append(keys, key)
		}
	}
	values := map[string]jetstream.KeyValueEntry{}
	for batch := range slices.Chunk(keys, historyBatch) {
		var last uint64
		for _, key := range batch {
			last = max(last, s.listing.newest[key].Revision())
		}
		asked := slices.Clone(batch)
		if len(asked) == 1 {
			// A single key would be part of the request's subject, which may then be too long. The
			// entries of the added key are ignored.
			asked = append(asked, asked[0]+".-")
		}
		err := s.opened.list(ctx, asked, newListing(last), func(entry jetstream.KeyValueEntry) {
			if entry.Operation() == jetstream.KeyValuePut && slices.Contains(batch, entry.Key()) {
				values[entry.Key()] = entry
			}
		}, jetstream.IncludeHistory())
		if err != nil {
			return nil, err
		}
	}
	var deleted []T
	for key, value := range values {
		marker := s.listing.newest[key].Revision()
		switch {
		case value.Revision() > marker:
			// It was created again since, and the watch delivers it.
			continue
		case value.Revision() < mirror.keys[key].revision:
			// It was deleted twice, and the first deletion was announced.
			continue
		}
		deleted = append(deleted, mirror.deleted(value, marker))
	}
	return deleted, nil
}

// lacks reports whether the value that a marker replaced may never have been seen.
func (m *mirror[T]) lacks(marker jetstream.KeyValueEntry) bool {
	known, tracked := m.keys[marker.Key()]
	return !tracked || !known.live && known.revision != marker.Revision()
}

// deleted returns the entity of a value that was deleted.
func (m *mirror[T]) deleted(value jetstream.KeyValueEntry, marker uint64) T {
	entity, err := m.bucket.decode(value.Key(), value.Revision(), value.Value())
	if err != nil {
		entity = newEntity[T](value.Key())
	}
	meta := entity.EntityMeta()
	meta.gone, meta.revision, meta.copier = true, marker, m.bucket.copier
	return entity
}
