package health

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

const (
	// largest is how long a text may be that an expression makes, in bytes.
	largest = 4 << 20
	// perElement is what an element of a list or a map counts beside its text, in bytes.
	perElement = 8
)

// bounded are the functions of CEL that make much of little, with a bound: CEL counts what a call costs when all of it is in memory.
func bounded() cel.EnvOption {
	return func(environment *cel.Env) (*cel.Env, error) {
		for _, option := range []cel.EnvOption{
			cel.Function("replace",
				cel.MemberOverload("string_replace_string_string", []*cel.Type{cel.StringType, cel.StringType, cel.StringType}, cel.StringType,
					cel.FunctionBinding(func(args ...ref.Val) ref.Val { return replace(append(args, types.Int(-1))) })),
				cel.MemberOverload("string_replace_string_string_int",
					[]*cel.Type{cel.StringType, cel.StringType, cel.StringType, cel.IntType}, cel.StringType,
					cel.FunctionBinding(func(args ...ref.Val) ref.Val { return replace(args) }))),
			cel.Function("join",
				cel.MemberOverload("list_join", []*cel.Type{cel.ListType(cel.StringType)}, cel.StringType,
					cel.UnaryBinding(func(list ref.Val) ref.Val { return join(list, types.String("")) })),
				cel.MemberOverload("list_join_string", []*cel.Type{cel.ListType(cel.StringType), cel.StringType}, cel.StringType,
					cel.BinaryBinding(join))),
			format,
		} {
			var err error
			if environment, err = option(environment); err != nil {
				return nil, err
			}
		}
		return environment, nil
	}
}

func tooLong() ref.Val {
	return types.NewErr("it makes a text of more than %d bytes: compare shorter texts", largest)
}

// format is the one of ext.Strings, for what is within the bound.
func format(environment *cel.Env) (*cel.Env, error) {
	original, err := originals(environment, "format")
	if err != nil {
		return nil, err
	}
	return cel.Function("format",
		cel.MemberOverload(stringFormat, []*cel.Type{cel.StringType, cel.ListType(cel.DynType)}, cel.StringType,
			cel.FunctionBinding(func(args ...ref.Val) ref.Val {
				if length(args[1], largest) < 0 {
					return tooLong()
				}
				return original[stringFormat].Function(args...)
			})))(environment)
}

// stringFormat is the overload of format.
const stringFormat = "string_format"

// originals returns what a function does without a bound, by its overloads.
func originals(environment *cel.Env, name string) (map[string]*functions.Overload, error) {
	bindings, err := environment.Functions()[name].Bindings()
	if err != nil {
		return nil, fmt.Errorf("bound the function %s: %w", name, err)
	}
	of := map[string]*functions.Overload{}
	for _, binding := range bindings {
		of[binding.Operator] = binding
	}
	return of, nil
}

// length returns what is left after a value with all that is in it.
func length(value ref.Val, left int) int {
	left -= perElement
	switch v := value.(type) {
	case types.String:
		left -= len(v)
	case types.Bytes:
		left -= len(v)
	case traits.Mapper:
		for keys := v.Iterator(); left >= 0 && keys.HasNext() == types.True; {
			key := keys.Next()
			left = length(v.Get(key), length(key, left))
		}
	case traits.Lister:
		for elements := v.Iterator(); left >= 0 && elements.HasNext() == types.True; {
			left = length(elements.Next(), left)
		}
	}
	return left
}

func replace(args []ref.Val) ref.Val {
	text, old, by, most := string(args[0].(types.String)), string(args[1].(types.String)), string(args[2].(types.String)), int(args[3].(types.Int))
	times := strings.Count(text, old)
	if most >= 0 {
		times = min(times, most)
	}
	if float64(len(text))+float64(times)*float64(len(by)) > largest {
		return tooLong()
	}
	return types.String(strings.Replace(text, old, by, most))
}

func join(list, separator ref.Val) ref.Val {
	elements, between := list.(traits.Lister), string(separator.(types.String))
	var text strings.Builder
	for i := types.Int(0); i < elements.Size().(types.Int); i++ {
		element, ok := elements.Get(i).(types.String)
		if !ok {
			return types.NewErr("join: invalid input: %v", elements.Get(i))
		}
		if i > 0 {
			text.WriteString(between)
		}
		if text.Len()+len(element)+len(between) > largest {
			return tooLong()
		}
		text.WriteString(string(element))
	}
	return types.String(text.String())
}
