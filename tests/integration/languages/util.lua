-- SPDX-License-Identifier: Apache-2.0
return {answer = function() return 42 end}
