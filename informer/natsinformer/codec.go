package natsinformer

import "encoding/json"

// Codec turns entities into the bytes of entries and back. It must be safe for concurrent use.
type Codec[T Entity] interface {
	// Encode returns the bytes of an entity, which it must not keep or change.
	Encode(entity T) ([]byte, error)
	// Decode returns a new entity that shares no memory with data.
	Decode(data []byte) (T, error)
}

// JSON is the Codec that a Bucket uses unless it is told otherwise: JSON by encoding/json.
type JSON[T Entity] struct{}

// Encode implements Codec.
func (JSON[T]) Encode(entity T) ([]byte, error) { return json.Marshal(entity) }

// Decode implements Codec.
func (JSON[T]) Decode(data []byte) (T, error) {
	var entity T
	err := json.Unmarshal(data, &entity)
	return entity, err
}
