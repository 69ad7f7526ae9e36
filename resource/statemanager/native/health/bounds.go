package health

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

const (
	// largest is how large a text or a list may be that a function makes, in bytes.
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
			format, flatten,
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

func tooMany() ref.Val { return types.NewErr("it makes a list of more than %d bytes", largest) }

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

// flatten is the one of ext.Lists, for what is within the bound: lists in lists may be the same ones.
func flatten(environment *cel.Env) (*cel.Env, error) {
	original, err := originals(environment, "flatten")
	if err != nil {
		return nil, err
	}
	flat := cel.ListType(cel.TypeParamType("T"))
	return cel.Function("flatten", decls.DisableTypeGuards(true), // as ext.Lists has it
		cel.MemberOverload(listFlatten, []*cel.Type{cel.ListType(flat)}, flat, cel.UnaryBinding(func(list ref.Val) ref.Val {
			if length(list, largest) < 0 {
				return tooMany()
			}
			return original[listFlatten].Unary(list)
		})),
		cel.MemberOverload(listFlattenInt, []*cel.Type{cel.ListType(cel.DynType), cel.IntType}, cel.ListType(cel.DynType),
			cel.BinaryBinding(func(list, depth ref.Val) ref.Val {
				if length(list, largest) < 0 {
					return tooMany()
				}
				return original[listFlattenInt].Binary(list, depth)
			})))(environment)
}

// Overloads of functions, by their names in CEL.
const (
	stringFormat   = "string_format"
	listFlatten    = "list_flatten"
	listFlattenInt = "list_flatten_int"
)

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

// sum is a + whose lists are within the bound. A list that others are put together to takes no memory, but what goes through it would not end.
type sum struct{ interpreter.InterpretableCall }

// sums is a decorator of programs.
func sums(part interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if call, ok := part.(interpreter.InterpretableCall); ok && call.Function() == operators.Add {
		return &sum{call}, nil
	}
	return part, nil
}

// Exec implements interpreter.InterpretableV2.
func (s *sum) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	result := s.InterpretableCall.Exec(frame)
	if list, ok := result.(traits.Lister); ok && list.Size().(types.Int) > largest/perElement {
		return tooMany()
	}
	return result
}

// costs counts by their sizes what functions are given and make that CEL takes to cost as little as a sum of two numbers: those of which it
// doesn't know the types when it compiles an expression, and some others.
type costs struct{}

// CallCost implements interpreter.ActualCostEstimator.
func (costs) CallCost(_, overload string, args []ref.Val, result ref.Val) *uint64 {
	if overload != "" && overload != stringFormat {
		return nil
	}
	return sizes(args, result)
}

// sizes is an interpreter.FunctionTracker.
func sizes(args []ref.Val, result ref.Val) *uint64 {
	const perUnit = 10 // characters, as CEL has it; an element is a unit
	cost := uint64(1)
	for _, value := range append(slices.Clone(args), result) {
		if sized, ok := value.(traits.Sizer); ok {
			size := uint64(sized.Size().(types.Int))
			if _, isList := value.(traits.Lister); !isList {
				size /= perUnit
			}
			cost += size
		}
	}
	return &cost
}

// bounds are those for programs.
func bounds() []cel.ProgramOption {
	return []cel.ProgramOption{
		cel.CostLimit(Cost), cel.CostTracking(costs{}), cel.CustomDecoratorV2(sums),
		cel.CostTrackerOptions(interpreter.OverloadCostTracker(listFlatten, sizes), interpreter.OverloadCostTracker(listFlattenInt, sizes)),
	}
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
