package natsinformer

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/panics"
)

// ErrUndecodable is in the chain of the error for an entry with a value that the codec can't
// decode.
var ErrUndecodable = errors.New("value can't be decoded")

// embedsMeta reports whether T is a pointer to a struct that embeds its metadata by value.
func embedsMeta[T Entity]() (embeds bool) {
	defer func() {
		if recover() != nil {
			embeds = false
		}
	}()
	return reflect.TypeFor[T]().Kind() == reflect.Pointer && newEntity[T]("").GetName() == ""
}

// newEntity returns an entity with nothing but a name.
func newEntity[T Entity](name string) T {
	entity := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	entity.EntityMeta().Name = name
	return entity
}

// decode decodes an entry.
func (b *Bucket[T]) decode(key string, revision uint64, data []byte) (entity T, err error) {
	entity, err = b.decodeValue(data)
	if err != nil {
		var none T
		return none, fmt.Errorf("entry %s of bucket %s, revision %d: %w: %w", key, b.config.Name, revision, ErrUndecodable, err)
	}
	m := entity.EntityMeta()
	m.Name, m.revision, m.copier = key, revision, b.copier
	return entity, nil
}

// decodeValue calls the codec. A panic becomes an error of this value.
func (b *Bucket[T]) decodeValue(data []byte) (entity T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the codec: %s", panics.Describe(r))
		}
	}()
	entity, err = b.config.Codec.Decode(data)
	if err == nil && reflect.ValueOf(entity).IsNil() {
		err = errors.New("it is null")
	}
	return entity, err
}

// clone returns a deep copy with the same metadata, including fields that are not encoded, except
// stored.
func (b *Bucket[T]) clone(entity T) (T, error) {
	copied, err := b.copyContent(entity)
	if err != nil {
		var none T
		return none, fmt.Errorf("copy %s of bucket %s: %w", entity.GetName(), b.config.Name, err)
	}
	from, to := entity.EntityMeta(), copied.EntityMeta()
	to.Name, to.revision, to.gone, to.copier, to.stored = from.Name, from.revision, from.gone, b.copier, nil
	return copied, nil
}

func (b *Bucket[T]) copyContent(entity T) (T, error) {
	if copiesItself(entity) {
		if copied, ok := informer.Copy(entity).(T); ok {
			return copied, nil
		}
	}
	if stored := entity.EntityMeta().stored; stored != nil && stored.data != nil {
		return b.decodeValue(stored.data)
	}
	data, err := b.config.Codec.Encode(entity)
	if err != nil {
		var none T
		return none, err
	}
	return b.decodeValue(data)
}

// copyOuter copies an entity of this bucket.
func (b *Bucket[T]) copyOuter(outer any) (any, error) {
	entity, ok := outer.(T)
	if !ok {
		return nil, fmt.Errorf("copy a %T as entity of bucket %s: it is no %s", outer, b.config.Name, reflect.TypeFor[T]())
	}
	return b.clone(entity)
}

// copiesItself reports whether informer.Copy copies the entity without its Bucket.
func copiesItself(entity any) bool {
	switch entity.(type) {
	case runtime.Object, informer.Copier:
		return true
	}
	return false
}
